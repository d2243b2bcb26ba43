"""Who may call: clients and their secrets, tokens and the keys that sign them, and the caps on calls."""
