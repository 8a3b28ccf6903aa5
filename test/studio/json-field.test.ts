import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { atEnd, sharedByTests } from '../support/at-end.ts';
import { BROWSER_MISSING, type OpenOptions, pageFaults, startStudio, withFiles } from './support/studio.ts';

const WORKFLOW = { id: 'note', jobs: { main: { steps: [{ id: 'keep', uses: 'set', with: { n: 1 } }] } } };
const LABEL = 'Input of the new run';
const CHUNK = '**/json-editor-*.js';
const INPUT = '{"order":1,"tags":["a",true,null],"name":"Ada"}';
const EDITED = '{"edited": true}';

/** Called in the page. */
const colour = (element: unknown): string =>
  (globalThis as unknown as { getComputedStyle(of: unknown): { color: string } }).getComputedStyle(element)
    .color;

/** Problems of a page without those of the chunk that a test aborts. */
const otherThanAborted = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.includes('ERR_FAILED'));

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'fields for JSON', () => {
  const shared = sharedByTests(async () => {
    const studio = await startStudio({}, withFiles({ 'workflows/note.yaml': JSON.stringify(WORKFLOW) }));
    atEnd(() => studio.close());
    const { id } = await studio.svc('workflows', 'run', 'note', '--input', INPUT);
    const statusOf = async () => (await studio.svc('workflows', 'show', id)).run.status;
    await vi.waitFor(async () => expect(await statusOf()).toBe('succeeded'), { timeout: 20_000 });
    return { ...studio, id };
  });

  /** Opens the form of a rerun. `prepare` is called before its page is loaded. */
  async function openForm(options: OpenOptions = {}, prepare?: (page: Page) => Promise<unknown>) {
    const { open, id, url } = shared();
    const opened = await open('/studio/', options);
    onTestFinished(() => opened.context.close());
    const { page } = opened;
    await prepare?.(page);
    await page.goto(`${url}/studio/runs/${id}?rerun=`);
    return {
      ...opened,
      field: page.getByRole('textbox', { name: LABEL }),
      editor: page.locator('.cm-content'),
      area: page.locator('.json-field textarea'),
      status: page.locator('.json-field').getByRole('status'),
      start: page.getByRole('button', { name: 'Start the new run' }),
    };
  }

  /** Returns the input of the run that the page shows after its form was sent. */
  async function startedInput(page: Page): Promise<unknown> {
    const { id, svc } = shared();
    await page.waitForURL((url) => url.pathname.startsWith('/studio/runs/') && !url.pathname.endsWith(id));
    return (await svc('workflows', 'show', new URL(page.url()).pathname.split('/').at(-1)!)).run.input;
  }

  for (const theme of ['light', 'dark'] as const)
    for (const width of [1440, 390])
      test(`a mistake is marked and told with its place in the ${theme} theme at ${width} px`, async () => {
        const { page, editor, status, start, problems } = await openForm({ theme, width });
        await editor.waitFor();
        await expect.poll(() => start.isEnabled()).toBe(true);
        expect(await pageFaults(page)).toEqual([]);
        await editor.fill('{\n  "order": wrong\n}');
        await expect.poll(() => status.textContent()).toBe('Line 2, column 12: expected a value.');
        expect(await page.locator('.problem').textContent()).toBe('wrong');
        expect(await editor.getAttribute('aria-invalid')).toBe('true');
        expect(await editor.getAttribute('aria-description')).toContain('Line 2, column 12');
        expect(await start.isDisabled()).toBe(true);
        expect(await pageFaults(page)).toEqual([]);
        await editor.fill(EDITED);
        await expect.poll(() => status.textContent()).toBe('');
        await expect.poll(() => editor.getAttribute('aria-invalid')).toBe('false');
        expect(await page.locator('.problem').count()).toBe(0);
        expect(problems).toEqual([]);
      });

  test('the editor is styled without a style element, and no content security policy is violated', async () => {
    const { page, editor, problems } = await openForm();
    await editor.waitFor();
    expect(await page.locator('style').count()).toBe(0);
    const colourOf = async (text: string) =>
      page.locator('.cm-line span', { hasText: text }).first().evaluate(colour);
    const colours = [await colourOf('"order"'), await colourOf('"Ada"'), await colourOf('null')];
    expect(new Set([...colours, await editor.evaluate(colour)]).size).toBe(4);
    expect(problems).toEqual([]);
  });

  test('the field is used by keyboard, and Tab leaves it', async () => {
    const { page, editor, problems } = await openForm();
    await editor.waitFor();
    const isFocused = () => editor.evaluate((content) => content.matches(':focus'));
    // The form takes the focus when it opens.
    await expect.poll(isFocused).toBe(true);
    const { keyboard } = page;
    await keyboard.press('ControlOrMeta+a');
    await keyboard.type('{"j": "k"');
    await keyboard.press('ControlOrMeta+z');
    await keyboard.press('ControlOrMeta+a');
    await keyboard.type(EDITED);
    await keyboard.press('ArrowLeft');
    await page.locator('.cm-matchingBracket').first().waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Start the new run' }).isEnabled()).toBe(true);
    await keyboard.press('Tab');
    expect(await isFocused()).toBe(false);
    expect(await page.locator(':focus').textContent()).toBe('Start the new run');
    await keyboard.press('Shift+Tab');
    expect(await isFocused()).toBe(true);
    await keyboard.press('Shift+Tab');
    expect(await isFocused()).toBe(false);
    await page.getByText(LABEL, { exact: true }).click();
    expect(await isFocused()).toBe(true);
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    expect(await startedInput(page)).toEqual({ edited: true });
    expect(problems).toEqual([]);
  });

  test('a plain text area takes the text if the editor cannot be loaded', async () => {
    const { page, area, editor, status, start, problems } = await openForm({}, (opened) =>
      opened.route(CHUNK, (route) => route.abort()),
    );
    await area.fill('{"edited": ');
    await expect.poll(() => status.textContent()).toBe('This text is not JSON.');
    expect(await pageFaults(page)).toEqual([]);
    await area.fill(EDITED);
    await start.click();
    expect(await startedInput(page)).toEqual({ edited: true });
    expect(await editor.count()).toBe(0);
    expect(otherThanAborted(problems)).toEqual([]);
  });

  test('text, selection and focus remain when the editor replaces the text area', async () => {
    let load = (): void => {};
    const loaded = new Promise<void>((resolve) => {
      load = resolve;
    });
    const { page, area, editor, problems } = await openForm({}, (opened) =>
      opened.route(CHUNK, async (route) => {
        await loaded;
        await route.continue();
      }),
    );
    await area.fill('{"a": 12}');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Shift+ArrowLeft');
    load();
    await editor.waitFor();
    await page.keyboard.type('3');
    await expect.poll(() => editor.textContent()).toBe('{"a": 13}');
    expect(problems).toEqual([]);
  });
});
