"""Where trials live: tables, transactions, databases."""
