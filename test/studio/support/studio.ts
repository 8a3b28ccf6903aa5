import { existsSync } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { AnyJson } from '../../support/any-json.ts';
import { createPlatform, type Platform } from '../../support/platform.ts';

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const PROGRAM = PROGRAMS.find((path) => existsSync(path));
/** Why the tests of the studio cannot run on this machine; undefined if they can. */
export const BROWSER_MISSING =
  PROGRAM === undefined ? 'studio (skipped: Chromium is not installed)' : undefined;

const PLUGIN = fileURLToPath(new URL('../../fixtures/projects/webhooks/plugins/orders', import.meta.url));
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** Keeps Chromium from calling its vendor at each start. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];
/** With it, a browser logs that a call was refused. Tests of refusals expect these lines. */
const REFUSED_CALL = /Failed to load resource: the server responded with a status of 4\d\d/;

/** A violation of a content security policy, as Chromium logs it. */
const POLICY_VIOLATION = /Content.Security.Policy/i;

/** Workflow of the tests: a step that fails once and is repeated, and an approval. */
const WORKFLOW = {
  id: 'ship',
  jobs: {
    main: {
      steps: [
        { id: 'note', uses: 'set', with: { order: `\${{ input.order }}` } },
        { id: 'confirm', uses: 'approval', with: { message: 'Ship the order?' } },
      ],
    },
  },
};

export interface Studio {
  url: string;
  platform: Platform;
  /** Runs a command of `svc`. Throws if it fails. */
  svc(...args: string[]): Promise<AnyJson>;
  /** Opens a page with a session of the operator. */
  open(path: string, options?: OpenOptions): Promise<StudioPage>;
  /** Throws if a page of the studio has violated its content security policy, so that every test fails then. */
  close(): Promise<void>;
}

export interface OpenOptions {
  width?: number;
  theme?: 'light' | 'dark';
  /** Without a session, the sign-in form is shown. */
  isSignedIn?: boolean;
  /** URL under which the page reaches the gateway, if not its own. */
  through?: string;
}

export interface StudioPage {
  page: Page;
  context: BrowserContext;
  /** What the page reported: errors, refused loads, violations of the content security policy. */
  problems: string[];
}

/** Adds files to a project, by their names. */
export const withFiles =
  (files: Readonly<Record<string, string>>) =>
  async (folder: string): Promise<void> => {
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  };

/**
 * The real platform with the fixture plugin and a workflow, and a browser. `prepare` is called with the project folder
 * before the platform starts.
 */
export async function startStudio(
  config: Record<string, unknown> = {},
  prepare?: (folder: string) => Promise<void>,
): Promise<Studio> {
  const platform = await createPlatform({ plugins: ['./plugins/*'], ...config });
  try {
    return await openStudio(platform, prepare);
  } catch (error) {
    await platform.dispose();
    throw error;
  }
}

async function openStudio(
  platform: Platform,
  prepare: ((folder: string) => Promise<void>) | undefined,
): Promise<Studio> {
  await cp(PLUGIN, join(platform.folder, 'plugins/orders'), { recursive: true });
  await mkdir(join(platform.folder, 'workflows'));
  await writeFile(join(platform.folder, 'workflows/ship.yaml'), JSON.stringify(WORKFLOW));
  await prepare?.(platform.folder);
  const url = await platform.up();
  const violations: string[] = [];
  const browser = await chromium.launch({ executablePath: PROGRAM!, args: FLAGS });
  return {
    url,
    platform,
    async svc(...args) {
      const { exitCode, envelope } = await platform.svc(...args);
      if (exitCode !== 0) throw new Error(`svc ${args.join(' ')} failed: ${JSON.stringify(envelope)}`);
      return envelope.result;
    },
    open: (path, options = {}) => openPage({ browser, platform, url, violations }, path, options),
    async close() {
      try {
        await browser.close();
      } finally {
        await platform.dispose();
      }
      if (violations.length > 0) throw new Error(`The studio violated its policy: ${violations.join('\n')}`);
    },
  };
}

interface Opener {
  browser: Browser;
  platform: Platform;
  url: string;
  violations: string[];
}

async function openPage(
  { browser, platform, url: ownUrl, violations }: Opener,
  path: string,
  { width = 1440, theme = 'light', isSignedIn = true, through: url = ownUrl }: OpenOptions,
): Promise<StudioPage> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    const isProblem = message.type() === 'error' || message.type() === 'warning';
    if (POLICY_VIOLATION.test(message.text()) && page.url().startsWith(`${url}/studio`))
      violations.push(message.text());
    if (isProblem && !REFUSED_CALL.test(message.text())) problems.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) problems.push(`request to ${request.url()}`);
  });
  if (isSignedIn) {
    const { envelope } = await platform.svc('studio');
    await page.goto(envelope.result.url.replace(ownUrl, url));
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  }
  await page.goto(url + path);
  return { page, context, problems };
}

/** Returns what axe finds wrong with the page: rule and element. */
export async function axeViolations(page: Page): Promise<string[]> {
  // The content security policy forbids inline scripts, so axe comes in through the debugger.
  await page.evaluate(await axeSource());
  const results = await page.evaluate(() =>
    (
      globalThis as unknown as {
        axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      }
    ).axe.run(),
  );
  return results.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** Returns what axe finds on the page, and by how much the page is wider than the window. */
export async function pageFaults(page: Page): Promise<string[]> {
  const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
  return [...(await axeViolations(page)), ...(overflow > 0 ? [`${overflow} px too wide`] : [])];
}

let source: Promise<string> | undefined;
function axeSource(): Promise<string> {
  source ??= import('node:fs/promises').then(({ readFile }) => readFile(AXE, 'utf8'));
  return source;
}
