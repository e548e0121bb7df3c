"""Points: G1 and G2 of every curve, their encodings, and the pairing."""
