"""How quickly summaries are made by group and how quickly they answer, beside packages that go over the rows."""
