import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { createStudioLink } from '../../contracts/index.ts';
import { defineCommand, ok } from '../define-command.ts';
import { gatewayUrl } from '../gateway-client.ts';

interface Result {
  url: string;
  expiresAt: number;
}

/** @spec docs/studio.md */
export const studio = defineCommand({
  name: 'studio',
  summary: 'Open the web console, signed in by a one-time link',
  example: 'svc studio',
  args: z.object({}),
  async run(_args, context) {
    const { client, globals } = context;
    const { path, publicUrl, expiresAt } = await client.call(createStudioLink, {});
    // Behind https, browsers keep the cookie only on the public address.
    const url = new URL(path, publicUrl ?? (await gatewayUrl(context))).href;
    if (!globals.json && process.stdout.isTTY) openBrowser(url);
    return ok({ url, expiresAt });
  },
  text: ({ url }: Result, style) =>
    `${url}\n${style.dim('The link works once, within 60 seconds. Open it if no browser window appears.')}`,
});

/**
 * Opens a URL in the person's browser, if there is one. Other users of the machine can read the arguments of a program,
 * so the program gets a private file that leads to the URL.
 */
function openBrowser(url: string): void {
  const file = join(mkdtempSync(join(tmpdir(), 'svc-studio-')), 'open.html');
  writeFileSync(file, `<meta http-equiv="refresh" content="0; url=${url}">`, { mode: 0o600 });
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const child = spawn(program, [file], { stdio: 'ignore', detached: true });
  // Without the program, the printed link is enough.
  child.once('error', () => {});
  child.unref();
}
