"""The figures that a twin predicts, beside the measured ones. They judge nothing."""
