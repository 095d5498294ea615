"""The experiments of papers P1 … P5: their claims, their figures, and what they published."""
