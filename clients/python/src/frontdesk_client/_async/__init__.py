"""The async client. `session`, `pages` and `proposals` are written by hand; the plain client is made from them."""
