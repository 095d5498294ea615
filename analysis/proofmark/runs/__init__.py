"""The folder of a run: the only room with the names of the files in ``runs/<id>/``.

May import: plan and the rooms below it.
"""
