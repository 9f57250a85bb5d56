"""The page in a real browser: what a person sees of fleet, queue and a task, live."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from oarlock_runtime import Bus
from oarlock_schemas import (
    DeviceState,
    Lease,
    LeaseBook,
    LogLine,
    StateChange,
    TaskQueued,
    TaskRecord,
)

from .conftest import AT, TOKEN, Gateway

pytestmark = pytest.mark.browser
SCREENSHOTS = os.environ.get("OARLOCK_SCREENSHOTS")


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A tab of headless Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        if "browser" in os.environ.get("OARLOCK_REQUIRE", "").split(","):
            pytest.fail("a browser is required, and there is no chromium")
        pytest.skip("there is no chromium on this machine")
    async with async_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        browser = await playwright.chromium.launch(executable_path=chromium, args=flags)
        try:
            tab = await browser.new_page(viewport={"width": 1400, "height": 900}, locale="en-US")
            tab.set_default_timeout(20_000)
            expect.set_options(timeout=20_000)
            yield tab
        finally:
            await browser.close()


async def fill(bus: Bus) -> None:
    """A device with a lease, a running task, and one that waits; a name that tries to be markup."""
    device = DeviceState(
        uid="GPU-a",
        site="s",
        node="n1",
        kind="RTX 3090",
        vendor="nvidia",
        memory_bytes=24 * 2**30,
        used_bytes=6 * 2**30,
        seen_at=AT,
        simulated=True,
    )
    await bus.bucket("devices", DeviceState).put("s.n1.GPU-a", device)
    lease = Lease(task_id="t-run", attempt=1, bytes=12 * 2**30, since=AT)
    await bus.bucket("leases", LeaseBook).put("GPU-a", LeaseBook(device_uid="GPU-a", leases=[lease]))
    history = [StateChange(state="submitted", at=AT, by="test")]
    tasks = bus.bucket("tasks", TaskRecord)
    running = TaskRecord(
        task_id="t-run",
        name="<img src=x onerror=alert(1)>",
        state="running",
        device_kind="RTX 3090",
        simulated=True,
        history=history,
    )
    await tasks.put("t-run", running)
    await tasks.put("t-wait", TaskRecord(task_id="t-wait", name="waiting one", state="queued", history=history))
    queued = TaskQueued.model_validate(
        {
            "task_id": "t-wait",
            "reasons": [{"reason": "busy", "message": "every device is busy"}],
            "would_free": ["t-run ends"],
            "at": AT,
        }
    )
    await bus.publish(bus.subjects.queued("t-wait"), queued)
    line = LogLine(task_id="t-wait", attempt=1, stream="stdout", line="hello <b>log</b>", number=1, at=AT)
    await bus.publish(bus.subjects.logs("t-wait"), line)


async def test_a_person_sees_fleet_queue_and_a_task_live(gateway: Gateway, bus: Bus, page: Page) -> None:
    dialogs: list[str] = []
    errors: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.on("pageerror", lambda error: errors.append(str(error)))
    await fill(bus)
    await page.goto(f"{gateway.url}/?token={TOKEN}")
    assert "token" not in page.url
    await expect(page.locator("#live")).to_have_class("on")
    await expect(page.locator("#fleet tbody tr")).to_have_count(1)
    await expect(page.locator("#fleet tbody")).to_contain_text("6.0 GiB of 24.0 GiB")
    await expect(page.locator("#fleet tbody")).to_contain_text("simulated")
    await expect(page.locator("#fleet tbody")).to_contain_text("t-run")
    await expect(page.locator("#tasks tbody tr")).to_have_count(2)
    await expect(page.locator("#tasks")).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(page.locator("#counts")).to_have_text("1 devices · 1 running · 1 waiting")

    await page.get_by_text("waiting one").click()
    await expect(page.locator("#events")).to_contain_text("every device is busy")
    await expect(page.locator("#events")).to_contain_text("t-run ends")
    await expect(page.locator("#logs")).to_contain_text("hello <b>log</b>")

    record = TaskRecord(task_id="t-new", name="just came", state="profiled")
    await bus.bucket("tasks", TaskRecord).put("t-new", record)
    await expect(page.locator("#tasks tbody tr")).to_have_count(3)

    await page.locator("#language").click()
    await expect(page.locator("#fleet-title")).to_have_text("设备")
    await expect(page.locator("#fleet tbody")).to_contain_text("模拟")
    if SCREENSHOTS:
        await page.screenshot(path=Path(SCREENSHOTS) / "page.png")
    assert dialogs == [] and errors == []


async def test_a_waiting_task_is_cancelled_from_the_page(gateway: Gateway, bus: Bus, page: Page) -> None:
    await fill(bus)
    await page.goto(f"{gateway.url}/?token={TOKEN}")
    await page.get_by_text("waiting one").click()
    await page.locator("#cancel").click()

    async with asyncio.timeout(20):
        async for message in bus.watch(bus.subjects.cancel("t-wait"), start="all"):
            assert message.json()["by"] == "gateway"
            break


async def test_without_the_token_the_page_asks_for_it(gateway: Gateway, page: Page) -> None:
    await page.goto(gateway.url)
    await expect(page.locator("#fleet")).to_have_count(0)
    await page.locator("input[name=token]").fill(TOKEN)
    await page.locator("button").click()
    await expect(page.locator("#fleet")).to_be_visible()
