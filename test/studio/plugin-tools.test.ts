import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

const SHOP = fileURLToPath(new URL('../fixtures/projects/rest/plugins/shop', import.meta.url));
const GREETER = fileURLToPath(new URL('../fixtures/projects/commands/plugins/greeter', import.meta.url));
const COUNTER = fileURLToPath(new URL('../fixtures/projects/commands/plugins/counter', import.meta.url));
const ROUTES = '/api/v1/plugins/shop';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'plugins in the studio', () => {
  let studio: Studio;

  beforeAll(async () => {
    studio = await startStudio({ plugins: ['./plugins/*', SHOP, GREETER, COUNTER] });
  });
  afterAll(() => studio?.close());

  /** Writes a plugin folder and returns its path. */
  async function pluginFolder(version: string, permissions: object): Promise<string> {
    const folder = join(studio.platform.folder, `ticker-${version}`);
    await mkdir(folder, { recursive: true });
    const manifest = { schema: 'svc.plugin/3', id: 'ticker', version, permissions };
    await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({ name: 'ticker', version, type: 'module' }),
    );
    return folder;
  }

  test('a route is called from its schema, with parameters, a form or JSON', async () => {
    const { page, problems, context } = await studio.open('/studio/plugins/%40acme%2Fshop', { width: 390 });
    const open = async (title: string) => {
      const route = page.locator('details', { has: page.getByText(title, { exact: true }) });
      await route.locator('summary').click();
      return route;
    };
    const create = await open(`POST ${ROUTES}/orders`);
    await create.getByLabel('sku').fill('a-42');
    await create.getByRole('button', { name: 'As JSON' }).click();
    expect(JSON.parse((await create.locator('.cm-content').textContent())!)).toEqual({ sku: 'a-42' });
    await create.getByRole('button', { name: 'As JSON' }).click();
    await create.getByLabel('quantity').fill('3');
    await create.getByRole('button', { name: 'Call' }).click();
    await create.getByText('The route answered 200.').waitFor();
    expect(await create.locator('pre').last().textContent()).toContain('"sku": "a-42"');
    await create.getByRole('button', { name: 'As JSON' }).click();
    await create.getByLabel('Input as JSON').fill('{"sku":"b"}');
    await create.getByRole('button', { name: 'Call' }).click();
    await create.getByText('The route answered 400.').waitFor();

    const line = await open(`GET ${ROUTES}/orders/:id/lines/:line`);
    const call = line.getByRole('button', { name: 'Call' });
    expect(await call.isDisabled()).toBe(true);
    await line.getByLabel('id').fill('a/1');
    await line.getByLabel('line').fill('7');
    await call.click();
    await line.getByText('The route answered 200.').waitFor();
    expect(await line.locator('pre').last().textContent()).toContain('"id": "a/1"');
    expect(await axeViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a command is run from its form, which the palette opens', async () => {
    const { page, problems, context } = await studio.open('/studio/');
    await page.getByRole('button', { name: 'Go to…' }).click();
    await page.getByRole('combobox', { name: 'Screen, name or id' }).fill('command greeter greet');
    await page.getByRole('option', { name: 'Command greeter greet', exact: false }).first().waitFor();
    await page.keyboard.press('Enter');
    const command = page.locator('details[open]');
    await command.getByLabel('name').fill('Ada');
    await command.getByLabel('loud (optional)').selectOption('true');
    await command.getByLabel('tags (optional), as JSON').fill('["x"]');
    await command.getByRole('button', { name: 'Run' }).click();
    await command.getByText('The command succeeded.').waitFor();
    expect(await command.locator('pre').last().textContent()).toContain('HELLO ADA');
    await page.getByRole('button', { name: 'Go to…' }).click();
    await page.getByRole('combobox', { name: 'Screen, name or id' }).fill('command greeter count-greetings');
    await page.getByRole('option', { name: 'greeter count-greetings' }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator('details[open] > summary', { hasText: 'count-greetings' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a plugin shows the permissions that it has, and when it last used them', async () => {
    await studio.svc('run', 'greeter', 'count-greetings', '--input', '{"add":1}');
    const { page, problems, context } = await studio.open('/studio/plugins/greeter');
    const used = page.getByRole('row', { name: /^invoke @acme\/counter\/count/ });
    await used.locator('time').waitFor();
    const idle = page.getByRole('row', { name: /^platform\.cache/ });
    expect(await idle.textContent()).toContain('no use stored');
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a plugin is installed and updated after its new permissions are shown', async () => {
    const first = await pluginFolder('1.0.0', {});
    const second = await pluginFolder('1.1.0', { network: ['api.example.com'], env: ['TICKER_KEY'] });
    const { page, problems, context } = await studio.open('/studio/plugins', { theme: 'dark' });
    await page.getByRole('link', { name: 'Install a plugin' }).click();
    await page.getByLabel('Package name, git URL, or absolute path').fill(first);
    await page.getByRole('button', { name: 'Show the changes' }).click();
    await page.getByText('They do not change.').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Install ticker 1.0.0' }).click();
    await page.getByRole('heading', { name: 'ticker', level: 1 }).waitFor();

    await page.getByLabel('New source (empty: the installed one)').fill(second);
    await page.getByRole('button', { name: 'Show the changes' }).click();
    const added = page.locator('li', { hasText: 'New' });
    await expect
      .poll(() => added.allTextContents())
      .toEqual(['New: network api.example.com ', 'New: env TICKER_KEY ']);
    expect(await axeViolations(page)).toEqual([]);
    expect((await studio.svc('plugins', 'show', 'ticker')).version).toBe('1.0.0');
    await page.getByRole('button', { name: 'Update ticker 1.1.0' }).click();
    await page.getByText('The plugin is updated.').waitFor();
    await page.getByText('1.1.0').first().waitFor();
    expect((await studio.svc('plugins', 'show', 'ticker')).version).toBe('1.1.0');
    expect(problems).toEqual([]);
    await context.close();
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      test(`the tools are accessible and fit in the ${theme} theme at ${width} px`, async () => {
        const { page, problems, context } = await studio.open('/studio/', { theme, width });
        const paths = [
          '/studio/plugins?install=1',
          '/studio/plugins/greeter?command=greet',
          '/studio/webhooks?setup=1',
          '/studio/webhooks?setup=1&pluginId=%40acme%2Forders&event=shop',
          '/studio/webhooks?pluginId=%40acme%2Forders&event=plain',
          '/studio/queues',
        ];
        for (const path of paths) {
          await page.goto(studio.url + path);
          await page.locator('h1').first().waitFor();
          await expect.poll(() => page.locator('.state:not(.empty)').count()).toBe(0);
          const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
          if (overflow > 0) problems.push(`${path}: ${overflow} px too wide`);
          problems.push(...(await axeViolations(page)).map((each) => `${path}: ${each}`));
        }
        expect(problems).toEqual([]);
        await context.close();
      });
    }
  }
});
