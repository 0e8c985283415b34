"""What privacy costs: losses and coverage of files with a promise, AdaSSP and a secret Gaussian sketch beside them."""
