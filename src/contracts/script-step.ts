import { z } from 'zod';
import type { AnyJson } from './workflow-fields.ts';

export const SCRIPT_SHELLS = ['bash', 'sh', 'python', 'node'] as const;
export const MAX_SCRIPT_CHARS = 64 * 1024;

const EnvName = z
  .string()
  .regex(/^(?!SVC_)[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be a name of letters, digits and "_", not SVC_…');

/** Fields of a step that accompany `run`. */
export const scriptFields = {
  shell: z.enum(SCRIPT_SHELLS).optional(),
  /** Variables of the script. They are the only way for values of expressions and secrets into it. */
  env: z
    .record(EnvName, z.union([z.string(), z.number(), z.boolean()]))
    .refine((env) => Object.keys(env).length <= 100, 'must not have more than 100 variables')
    .optional(),
  /** Whether the script uses the network of the machine. */
  network: z.boolean().optional(),
  memoryMb: z.number().int().min(16).max(65_536).optional(),
};

/** `with` of a step `uses: run`, which `run: …` is short for. */
export const ScriptInput = z.strictObject({
  script: z.string().min(1).max(MAX_SCRIPT_CHARS),
  ...scriptFields,
});
export type ScriptInput = z.infer<typeof ScriptInput>;

const SCRIPT_KEYS = Object.keys(scriptFields) as Array<keyof typeof scriptFields>;

/** Keys of a step as it is written that `actionOf` turns into `uses` and `with`. */
type ActionKey = keyof typeof scriptFields | 'uses' | 'run' | 'sleep' | 'with';

type Values = Record<string, z.infer<typeof AnyJson>>;

interface WrittenStep extends Partial<Omit<ScriptInput, 'script'>> {
  uses?: string | undefined;
  run?: string | undefined;
  sleep?: string | undefined;
  with: Values;
}

/** Returns the `uses` and `with` of a step. Reports keys that do not belong together. */
export function actionOf<Step extends WrittenStep>(
  { uses, run, sleep, with: values, shell, env, network, memoryMb, ...step }: Step,
  { issues }: z.core.ParsePayload,
): Omit<Step, ActionKey> & { uses: string; with: Values } {
  const given = { shell, env, network, memoryMb };
  const told = SCRIPT_KEYS.filter((key) => given[key] !== undefined);
  const report = (key: string, message: string): void =>
    void issues.push({ code: 'custom', input: step, path: [key], message });
  const short = run === undefined ? (sleep === undefined ? undefined : 'sleep') : 'run';
  if (run !== undefined && sleep !== undefined)
    report('sleep', 'belongs into a step of its own, without run');
  if (short && (uses !== undefined || Object.keys(values).length > 0))
    report(short, 'says what the step does, so remove uses and with');
  if (run === undefined) for (const key of told) report(key, 'belongs to steps with run: only');
  if (run !== undefined) {
    const options = Object.fromEntries(told.map((key) => [key, given[key]!]));
    return { ...step, uses: 'run', with: { script: run, ...options } };
  }
  return sleep === undefined
    ? { ...step, uses: uses!, with: values }
    : { ...step, uses: 'wait', with: { for: sleep } };
}
