import { existsSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import type { PlanChange, PluginPlan } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { confirm } from '../../confirm.ts';
import type { CommandContext } from '../../context.ts';
import type { Style } from '../../style.ts';

/** Fetching, and what npm does meanwhile. */
export const INSTALL_TIMEOUT_MS = 120_000;

export const runManifestFlag = z
  .boolean()
  .default(false)
  .describe('run a manifest that is code although bubblewrap does not confine it');

/** A path means the folder of whoever types it; the service has another one. */
export function absoluteSource(source: string, { cwd }: CommandContext): string {
  const isPath = /^\.{1,2}(?:\/|$)/.test(source) || isAbsolute(source);
  return isPath || (/\.(?:tgz|tar\.gz)$/.test(source) && existsSync(resolve(cwd, source)))
    ? resolve(cwd, source)
    : source;
}

/** Shows what would change and asks. Throws when the answer is no. */
export async function agree(plan: PluginPlan, context: CommandContext): Promise<void> {
  context.ui.noteOf(plan, planText);
  const what = plan.installed === null ? 'Install' : `Replace ${plan.installed} by`;
  if (await confirm(context, `${what} ${plan.id} ${plan.version}?`)) return;
  throw new PlatformError('CONFLICT', 'Nothing was changed.', { details: { pluginId: plan.id } });
}

/** What a plan changes, for a copy of it without control characters. */
export function planText({ id, version, installed, resolved, changes, warnings }: PluginPlan, style: Style) {
  return [
    `${style.bold(id)} ${installed === null ? version : `${installed} -> ${version}`}  ${style.dim(resolved)}`,
    ...(changes.length === 0
      ? ['  permissions, routes and what runs by itself stay as they are']
      : changes.map(changeLine)),
    ...warnings.map((warning) => `${style.yellow('!')} ${warning}`),
  ].join('\n');

  function changeLine({ change, what, name, before, after }: PlanChange): string {
    const mark = { added: style.green('+'), removed: style.red('-'), changed: style.yellow('~') }[change];
    const when = change === 'added' ? (after as { when?: string } | undefined)?.when : undefined;
    const values =
      change === 'changed'
        ? `  ${JSON.stringify(before)} -> ${JSON.stringify(after)}`
        : when
          ? `: ${when}`
          : '';
    return `  ${mark} ${what} ${name}${values}`;
  }
}
