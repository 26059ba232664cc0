"""What any numerical package needs, and nothing that knows of ranking."""
