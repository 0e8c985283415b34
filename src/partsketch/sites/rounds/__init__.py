"""More rounds, when sites can answer: questions, answers, and the folder of whoever asks."""
