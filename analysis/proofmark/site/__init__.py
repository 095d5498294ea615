"""What is known of a site: its inventory, and what its nodes reported.

May import: cases and the rooms below it.
"""
