"""Forms that edit a practice: each reads the practice's document, changes a part of it, and shows errors by field."""
