import { spawn } from 'node:child_process';
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
    const { client, globals, ui } = context;
    const { path, expiresAt } = await client.call(createStudioLink, {});
    const url = new URL(path, await gatewayUrl(context)).href;
    const isAttended = !globals.json && process.stdout.isTTY === true;
    if (isAttended && !(await openBrowser(url)))
      ui.warn('No browser could be opened. Open the link yourself.');
    return ok({ url, expiresAt });
  },
  text: ({ url }: Result, style) => `${url}\n${style.dim('The link works once, within 60 seconds.')}`,
});

/** Opens a URL in the person's browser. Returns false if that is not possible. */
function openBrowser(url: string): Promise<boolean> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  return new Promise((resolve) => {
    const child = spawn(program, [url], { stdio: 'ignore', detached: true });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
    child.unref();
  });
}
