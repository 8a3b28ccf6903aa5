import type { Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { pageFaults, type Studio, type StudioPage } from './studio.ts';

/** Opens a page as a client with this role, in this namespace, and returns its host id, too. The context is closed when the test ends. */
export async function openAs(
  studio: Studio,
  role: 'viewer' | 'editor' | 'admin',
  path: string,
  namespaceId = 'default',
): Promise<StudioPage & { hostId: string }> {
  const flags = ['--namespace', namespaceId];
  const client = await studio.svc('clients', 'create', `${role} of ${namespaceId}`, ...flags);
  await studio.svc('roles', 'grant', `client:${client.clientId}`, role, ...flags);
  const opened = await studio.open(path, { isSignedIn: false });
  onTestFinished(() => opened.context.close());
  const { page } = opened;
  await page.getByLabel('Client id').fill(client.clientId);
  await page.getByLabel('Client secret').fill(client.clientSecret);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  await settled(page);
  return { ...opened, hostId: client.hostId };
}

/** Opens a page as the operator. The context is closed when the test ends. */
export async function openPage(studio: Studio, ...args: Parameters<Studio['open']>): Promise<StudioPage> {
  const opened = await studio.open(...args);
  onTestFinished(() => opened.context.close());
  await settled(opened.page);
  return opened;
}

/** Waits until a screen has its data. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').waitFor();
  await expect.poll(() => page.locator('.state:not(.empty)').count()).toBe(0);
}

/** Opens the parts of a page that are closed, and returns what is wrong with the page at both widths and themes. */
export async function faultsInAllThemes(studio: Studio, paths: readonly string[]): Promise<string[]> {
  const faults: string[] = [];
  for (const theme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      const { page, problems, context } = await studio.open(paths[0]!, { theme, width });
      for (const path of paths) {
        await page.goto(studio.url + path);
        await settled(page);
        for (const summary of await page.locator('summary').all()) await summary.click();
        await settled(page);
        const found = [...problems.splice(0), ...(await pageFaults(page))];
        faults.push(...found.map((fault) => `${path} (${theme}, ${width} px): ${fault}`));
      }
      await context.close();
    }
  }
  return faults;
}

/** Returns the actions of the newest entries of the audit log, newest first. */
export async function auditedActions(studio: Studio): Promise<string[]> {
  const { items } = await studio.svc('audit', 'list');
  return items.map(({ action }: { action: string }) => action);
}
