"""Opening pages in the browser so that nothing goes unnoticed, and asking axe-core about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()


@contextmanager
def opened(
    browser: Any, address: str, width: int = 1200, scheme: str = "light", allowed: str = "file:"
) -> Iterator[Any]:
    """Open a page; fail at the end if it wrote to the console, raised, or asked for anything outside."""
    # The page's own policy forbids scripts from elsewhere; axe-core is let in only where it is injected.
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith((allowed, "data:")) else messages.append(request.url),
    )
    page.goto(address, wait_until="load")
    yield page
    context.close()
    assert messages == []


def accessibility_faults(browser: Any, address: str, width: int, scheme: str) -> list[str]:
    """Return what axe-core finds, all rules at their defaults, everything unfolded."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(address, wait_until="load")
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    page.evaluate(AXE)
    outcome = page.evaluate("axe.run()")
    context.close()
    assert len(outcome["passes"]) > 20, "axe-core did not look"
    return [f"{fault['id']}: {fault['nodes'][0]['html']}" for fault in outcome["violations"]]
