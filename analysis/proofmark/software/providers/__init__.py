"""The providers: one module with one subclass of `proofmark.software.provider.Provider` each."""
