"""The RAG pipelines that are evaluated, behind one protocol, and the stage that asks them every question."""
