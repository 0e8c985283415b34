"""`partsketch explore`: a local page with sliders for the formulas."""

from __future__ import annotations

import click

from partsketch.cli.printing import complain, print_json, say


@click.command("explore", epilog="Example: partsketch explore --rows 1e7 --columns 50 --partitions 16")
@click.option("--rows", "n", type=float, help="Rows n to start with.")
@click.option("--columns", "d", type=float, help="Columns d to start with.")
@click.option("--partitions", "-k", "k", type=int, help="Partitions k to start with.")
@click.option("--sketch-size", "-m", "m", type=int, help="Sketch rows m to start with.")
@click.option("--noise-variance", "variance", type=float, help="Noise variance σ² to start with.")
@click.option("--design", help="How partitions differ: alike, gaussian, odd or given.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; default: any free one.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the first state's numbers as JSON, and serve nothing.")
def command(port: int, browser: bool, as_json: bool, **start: float | int | str | None) -> None:
    """Show what the formulas say, as sliders move: a page on this machine, for whoever has its address."""
    from partsketch.report.explorer.state import State

    state = State.from_query({name: str(value) for name, value in start.items() if value is not None})
    if as_json:
        from partsketch.planner.calibration import calibration
        from partsketch.report.explorer.numbers import numbers

        told = numbers(state, calibration())
        print_json({name: value for name, value in told.items() if name != "figures"})
        return
    from partsketch.report.explorer.server import ExplorerServer

    with ExplorerServer(port, state) as server:
        say(f"The explorer is at {server.address}")
        complain("Only whoever has this address can see it. Press Ctrl+C to stop.")
        if browser:
            import webbrowser

            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            complain("Stopped.")
