"""The secret key and what is sealed with it: the key ring for tokens, slot ids and cursors."""
