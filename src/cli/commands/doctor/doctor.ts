import { z } from 'zod';
import { messageOf, PlatformError, toPlatformError } from '../../../kit/errors/errors.ts';
import { findSupervisor } from '../../../supervisor/control-client.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { helpWidth, wrap } from '../../wrap.ts';
import { checkAdapters } from './adapters.ts';
import { type Check, type CheckTarget, type Fact, type Finding, failure } from './check.ts';
import { checkCluster } from './cluster.ts';
import { checkEngine, checkSandbox } from './execution.ts';
import { checkModes } from './files.ts';
import { checkHosts } from './hosts.ts';
import { checkClock, checkDisk, checkNode } from './machine.ts';
import { checkPlugins } from './plugins.ts';
import { checkPorts } from './ports.ts';
import { checkSecrets } from './secrets.ts';
import { checkCredentials, checkStores } from './stores.ts';
import { checkSupervision } from './supervision.ts';
import { checkUpstreams } from './upstreams.ts';
import { checkVendor } from './vendor.ts';
import { checkWorkflows } from './workflows.ts';

export interface Diagnosis {
  checks: Finding[];
  failed: number;
  warned: number;
  fixed: number;
}

/** Width of the columns before the message: mark, name of the check and spaces. */
const MARGIN = 14;

/** Checks in the order in which problems should be fixed. All checks require a valid configuration. */
const CHECKS: ReadonlyArray<[name: string, check: Check]> = [
  ['disk', checkDisk],
  ['clock', checkClock],
  ['files', checkModes],
  ['credentials', checkCredentials],
  ['stores', checkStores],
  ['secrets', checkSecrets],
  ['cluster', checkCluster],
  ['supervisor', checkSupervision],
  ['ports', checkPorts],
  ['sandbox', checkSandbox],
  ['engine', checkEngine],
  ['upstreams', checkUpstreams],
  ['plugins', checkPlugins],
  ['workflows', checkWorkflows],
  ['vendor', checkVendor],
  ['adapters', checkAdapters],
  ['hosts', checkHosts],
];

/** @spec docs/operations.md "svc doctor" */
export const doctor = defineCommand({
  name: 'doctor',
  summary: 'Check this machine, the project and its data, and suggest fixes',
  example: 'svc doctor --fix',
  args: z.object({
    fix: z.boolean().default(false).describe('fix what can be fixed safely: file modes, stale files'),
  }),
  async run({ fix }, context) {
    const diagnosis = await diagnose(context, fix);
    if (diagnosis.failed === 0) return { exitCode: 0, result: diagnosis };
    const names = [...new Set(diagnosis.checks.filter(isFailure).map(({ name }) => name))];
    return {
      exitCode: 1,
      result: diagnosis,
      error: {
        code: 'VALIDATION_ERROR',
        message: `Problems were found in: ${names.join(', ')}.`,
        details: { names },
      },
    };
  },
  text: diagnosisText,
});

/** Runs all checks. If a check throws, reports the check as failed and continues with the next check. */
export async function diagnose(context: CommandContext, fix: boolean): Promise<Diagnosis> {
  const checks = await findingsOf('node', () => checkNode(), fix);
  const target = await inspectTarget(context).catch((error: unknown) => configFaults(error));
  if (Array.isArray(target)) checks.push(...(await findingsOf('config', () => target, fix)));
  else {
    const where = target.loaded.configFile ?? 'no svc.config.json, defaults';
    const valid: Fact = { status: 'ok', message: `${where}, profile ${target.loaded.profile}` };
    checks.push(...(await findingsOf('config', () => [valid], fix)));
    for (const [name, check] of CHECKS) checks.push(...(await findingsOf(name, () => check(target), fix)));
  }
  const open = checks.filter(({ fixed }) => !fixed);
  return {
    checks,
    failed: open.filter(isFailure).length,
    warned: open.filter(({ status }) => status === 'warn').length,
    fixed: checks.length - open.length,
  };
}

const isFailure = ({ status, fixed }: Finding): boolean => status === 'fail' && !fixed;

async function inspectTarget(context: CommandContext): Promise<CheckTarget> {
  const loaded = context.platform();
  const folder = context.folder();
  const running =
    (await findSupervisor(folder)
      ?.status()
      .catch(() => null)) ?? null;
  return { context, loaded, env: loaded.env, folder, running, now: context.clock.now() };
}

/** Converts a configuration error to one failure per problem. Rethrows all other errors. */
function configFaults(error: unknown): Fact[] {
  if (!(error instanceof PlatformError)) throw error;
  const { problems, hint } = error.details as {
    problems?: Array<{ path: string; message: string }>;
    hint?: string;
  };
  if (!problems) return [failure(error.message, hint ?? 'Run svc config validate for details.')];
  return problems.map(({ path, message }) =>
    failure(`${path || '(file)'}: ${message}`, 'Fix svc.config.json to run the other checks.'),
  );
}

async function findingsOf(
  name: string,
  check: () => Fact[] | Promise<Fact[]>,
  fix: boolean,
): Promise<Finding[]> {
  let facts: Fact[];
  try {
    facts = await check();
  } catch (error) {
    const { hint } = toPlatformError(error).details as { hint?: string };
    const remedy = hint ?? 'Run svc doctor --debug for details.';
    facts = [failure(`The check failed: ${messageOf(error)}`, remedy)];
  }
  return facts.map((fact) => ({ name, ...withFix(fact, fix) }));
}

function withFix({ fix: applyFix, remedy, status, message }: Fact, fix: boolean): Omit<Finding, 'name'> {
  const found = { status, message, remedy: remedy ?? null, fixed: false };
  if (!fix || !applyFix) return found;
  try {
    return { ...found, remedy: `fixed: ${applyFix()}`, fixed: true };
  } catch (error) {
    return { ...found, remedy: `${remedy} (--fix failed: ${messageOf(error)})` };
  }
}

function diagnosisText({ checks, failed, warned, fixed }: Diagnosis, style: Style): string {
  const mark = ({ status, fixed: isFixed }: Finding): string => {
    if (isFixed || status === 'ok') return style.green('✓');
    return status === 'warn' ? style.yellow('!') : style.red('✗');
  };
  // Terminals break long lines within words, so lines are wrapped here. Piped output has one line per finding.
  const width = process.stdout.isTTY ? helpWidth(process.stdout) - MARGIN : Number.POSITIVE_INFINITY;
  const column = (head: string, text: string): string[] =>
    wrap(text, width).map((line, index) => `${index === 0 ? head : ' '.repeat(MARGIN)}${line}`);
  const lines = checks.flatMap((finding) => [
    ...column(`${mark(finding)} ${finding.name.padEnd(11)} `, finding.message),
    ...(finding.remedy ? column(`${' '.repeat(MARGIN - 2)}${style.cyan('→')} `, finding.remedy) : []),
  ]);
  const counts = [`${failed} failed`, `${warned} warnings`, ...(fixed > 0 ? [`${fixed} fixed`] : [])];
  return [
    ...lines,
    '',
    failed + warned === 0 ? style.green('No problems found.') : `${counts.join(', ')}.`,
  ].join('\n');
}
