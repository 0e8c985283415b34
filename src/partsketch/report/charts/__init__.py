"""Charts as SVG texts: colours come from the style sheet of the page, so they follow light, dark and paper."""
