"""DP-SE (Sajed & Sheffet 2019): successive elimination in epochs of fresh samples."""
