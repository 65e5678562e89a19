"""Small faults put into the program, one at a time: do the tests notice?

``python -m tests.mutants --help`` says how. A mutant is chosen by a seed among all that `sites`
makes of the sources of a commit, so that two versions of the tests can be asked for the same ones.
`lines` knows which tests run which lines, and `runs` runs these on a mutant, in a fork of a process
that has imported and collected everything.
"""
