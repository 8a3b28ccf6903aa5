import { parse } from 'yaml';
import { z } from 'zod';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';

/** A value of the request, or a constant, that a hook reads. */
export const HookArgument = z.looseObject({
  source: z.string(),
  name: z.string().default(''),
  envname: z.string().optional(),
  base64decode: z.boolean().default(false),
});
export type HookArgument = z.infer<typeof HookArgument>;

export const HookMatch = z.looseObject({
  type: z.string(),
  value: z.coerce.string().optional(),
  regex: z.string().optional(),
  secret: z.string().optional(),
  'ip-range': z.string().optional(),
  parameter: HookArgument.optional(),
});
export type HookMatch = z.infer<typeof HookMatch>;

export type HookRule = { and: HookRule[] } | { or: HookRule[] } | { not: HookRule } | { match: HookMatch };

const HookRule: z.ZodType<HookRule> = z.lazy(() =>
  z.union([
    z.strictObject({ and: z.array(HookRule) }),
    z.strictObject({ or: z.array(HookRule) }),
    z.strictObject({ not: HookRule }),
    z.strictObject({ match: HookMatch }),
  ]),
);

const Status = z.number().int().min(0).max(599).optional();

/** A hook of a webhook server's configuration file (github.com/adnanh/webhook, "Hook definition"). */
export const Hook = z.looseObject({
  id: z.string().min(1),
  'execute-command': z.string().min(1),
  'command-working-directory': z.string().optional(),
  'response-message': z.string().optional(),
  'response-headers': z.array(z.strictObject({ name: z.string(), value: z.string() })).default([]),
  'success-http-response-code': Status,
  'incoming-payload-content-type': z.string().optional(),
  'http-methods': z.array(z.string()).default([]),
  'include-command-output-in-response': z.boolean().default(false),
  'include-command-output-in-response-on-error': z.boolean().default(false),
  'parse-parameters-as-json': z.array(HookArgument).default([]),
  'pass-arguments-to-command': z.array(HookArgument).default([]),
  'pass-environment-to-command': z.array(HookArgument).default([]),
  'pass-file-to-command': z.array(HookArgument).default([]),
  'trigger-rule': HookRule.optional(),
  'trigger-rule-mismatch-http-response-code': Status,
  'trigger-signature-soft-failures': z.boolean().default(false),
});
export type Hook = z.infer<typeof Hook>;

/**
 * Parses a file of hooks in JSON or YAML. Throws VALIDATION_ERROR for a template, a file of another format or an invalid
 * hook.
 */
export function parseHooks(text: string, file: string): Hook[] {
  if (/\{\{[^}]*\}\}/.test(text))
    throw invalid(file, 'it is a Go template: render it first, and import the result');
  const hooks = z.array(Hook).min(1).safeParse(read(text, file));
  if (!hooks.success) {
    const [issue] = hooks.error.issues;
    const [index, ...path] = issue!.path;
    const place = index === undefined ? '' : `hook ${Number(index) + 1}, ${path.join('.') || 'itself'}: `;
    throw invalid(file, `${place}${issue!.message}`);
  }
  const ids = hooks.data.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw invalid(file, `two hooks have the id ${JSON.stringify(twice)}`);
  return hooks.data;
}

function read(text: string, file: string): unknown {
  try {
    // Limits the expansion of YAML aliases. JSON is a subset of YAML.
    return parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw invalid(file, messageOf(error).split('\n')[0]!);
  }
}

function invalid(file: string, reason: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `${file} is no file of hooks: ${reason}.`, {
    details: { file },
  });
}
