import { z } from 'zod';
import type { Argument } from './command-description.ts';
import type { AnyCommand } from './define-command.ts';

/**
 * Derives command arguments from a schema. Required keys become positional arguments in schema order. Other keys become
 * flags unless `positionals` lists the key.
 */
export function argumentsOf({ args, positionals, short }: AnyCommand): Argument[] {
  return Object.entries(args.shape as Record<string, z.ZodType>).map(([key, schema]) => {
    const without = schema.safeParse(undefined);
    const required = !without.success;
    const inner = bare(schema);
    const item = inner instanceof z.ZodArray ? bare(inner.element) : inner;
    const kind = required || positionals?.includes(key) ? 'argument' : 'flag';
    const type = typeOf(item);
    const choices = item instanceof z.ZodEnum ? item.options.map(String) : undefined;
    return {
      key,
      name: kebab(key),
      kind,
      type,
      list: inner instanceof z.ZodArray,
      required,
      description: schema.description ?? '',
      ...(type === 'boolean' ? {} : { placeholder: placeholderOf(schema, type, choices) }),
      ...(short?.[key] ? { short: short[key] } : {}),
      ...(choices ? { choices } : {}),
      ...(hasDefault(without.data) ? { default: without.data } : {}),
    };
  });
}

/** Converts camel case to kebab case: `maxProcesses` becomes `max-processes`. */
export function kebab(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Returns true if help shows this default of an argument. Help does not show `false` and empty lists as defaults. */
function hasDefault(value: unknown): boolean {
  return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
}

function placeholderOf(schema: z.ZodType, type: Argument['type'], choices: string[] | undefined): string {
  const meta = schema.meta() as { placeholder?: string } | undefined;
  if (meta?.placeholder) return meta.placeholder;
  if (choices && choices.join('|').length <= 24) return choices.join('|');
  return type === 'number' ? 'n' : 'value';
}

function typeOf(schema: z.core.$ZodType): Argument['type'] {
  if (schema instanceof z.ZodBoolean) return 'boolean';
  return schema instanceof z.ZodNumber ? 'number' : 'string';
}

function bare(schema: z.core.$ZodType): z.core.$ZodType {
  let current = schema;
  while (current instanceof z.ZodOptional || current instanceof z.ZodDefault) current = current.unwrap();
  return current;
}
