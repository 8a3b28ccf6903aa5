import { existsSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import type { PlanChange, PluginPlan } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { confirm } from '../../confirm.ts';
import type { CommandContext } from '../../context.ts';
import type { Style } from '../../style.ts';
import { toolChangeLines } from './tool-changes.ts';

/** Time limit of an installation, including the download and `npm install`. */
export const INSTALL_TIMEOUT_MS = 120_000;

export const runManifestFlag = z
  .boolean()
  .default(false)
  .describe('run a manifest written in code even without a bubblewrap sandbox');

/** Resolves relative paths, because the service has another working directory. */
export function absoluteSource(source: string, { cwd }: CommandContext): string {
  const isPath = /^\.{1,2}(?:\/|$)/.test(source) || isAbsolute(source);
  return isPath || (/\.(?:tgz|tar\.gz)$/.test(source) && existsSync(resolve(cwd, source)))
    ? resolve(cwd, source)
    : source;
}

/** Prints the plan and prompts for confirmation. Throws CONFLICT if the user declines. */
export async function confirmPlan(plan: PluginPlan, context: CommandContext): Promise<void> {
  context.ui.noteOf(plan, planText);
  const what = plan.installed === null ? 'Install' : `Replace ${plan.installed} with`;
  if (await confirm(context, `${what} ${plan.id} ${plan.version}?`)) return;
  throw new PlatformError('CONFLICT', 'Nothing was changed.', { details: { pluginId: plan.id } });
}

/** Formats a plan. Callers must remove control characters from the plan first. */
export function planText({ id, version, installed, resolved, changes, warnings }: PluginPlan, style: Style) {
  return [
    `${style.bold(id)} ${installed === null ? version : `${installed} -> ${version}`}  ${style.dim(resolved)}`,
    ...(changes.length === 0
      ? ['  permissions, routes and automatic triggers are unchanged']
      : changes.flatMap((one) => (one.what === 'tool' ? toolChangeLines(one, style) : [changeLine(one)]))),
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
