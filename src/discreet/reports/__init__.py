"""What people read: pages, tables, pictures. Runs nothing but the way of one run."""
