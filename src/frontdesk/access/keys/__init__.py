"""The secret key and what is encrypted with it: the key ring for tokens, slot ids and cursors."""
