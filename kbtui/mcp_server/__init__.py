"""What another agent sees: the knowledge base over the Model Context Protocol, on stdio."""
