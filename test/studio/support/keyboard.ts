import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const MAX_TABS = 80;

interface Focused {
  text: string;
  hasOutline: boolean;
}

/** Text or label of the element with the focus. Runs in the page. */
const FOCUSED = `(() => {
  let element = document.activeElement;
  while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const text = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent;
  // The editor of JSON shows the focus around itself.
  const { outlineStyle, boxShadow } = getComputedStyle(element.closest('.cm-editor') ?? element);
  // Beyond the ends of the page, the body has the focus.
  const isOutside = element === document.body;
  return { text: isOutside ? '' : text.trim(), hasOutline: isOutside || outlineStyle !== 'none' || boxShadow !== 'none' };
})()`;

/** Presses Tab until the element with this text or label has the focus. Each element on the way must show its focus. */
export async function tabTo(
  page: Page,
  text: string | RegExp,
  key: 'Tab' | 'Shift+Tab' = 'Tab',
): Promise<void> {
  const passed: string[] = [];
  for (let tabs = 0; tabs < MAX_TABS; tabs++) {
    await page.keyboard.press(key);
    const read = () => page.evaluate<Focused>(FOCUSED);
    const focused = await read();
    passed.push(focused.text);
    // The editor of JSON shows it a moment later.
    await expect
      .poll(async () => (await read()).hasOutline, { message: `focus of ${focused.text}`, timeout: 10_000 })
      .toBe(true);
    if (typeof text === 'string' ? focused.text === text : text.test(focused.text)) return;
  }
  throw new Error(`Tab does not lead to ${text}, but to ${JSON.stringify(passed)}`);
}

/** Goes to fields one after the other and types into them. */
export async function typeInto(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  for (const [label, text] of Object.entries(fields)) {
    await tabTo(page, new RegExp(`^${label}( \\(optional\\))?$`));
    await page.keyboard.press('Control+a');
    await page.keyboard.type(text);
  }
}

/** Goes to a button or link and presses it. */
export async function press(page: Page, text: string | RegExp, key?: 'Tab' | 'Shift+Tab'): Promise<void> {
  await tabTo(page, text, key);
  await page.keyboard.press('Enter');
}
