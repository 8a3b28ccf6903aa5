import { z } from 'zod';
import { CONFIG_DESCRIPTIONS } from '../../contracts/descriptions/config.ts';
import { describeSchema } from '../../contracts/descriptions/describe.ts';
import { PlatformConfig, PROFILES_KEY } from '../../contracts/index.ts';

/**
 * Returns the JSON schema of `svc.config.json`. All config keys are optional, and each profile in `profiles` has the
 * same keys.
 */
export function configFileSchema(): Record<string, unknown> {
  const base = z.toJSONSchema(PlatformConfig, { io: 'input', unrepresentable: 'any' }) as {
    properties: Record<string, unknown>;
    $schema?: string;
  };
  const { $schema, ...section } = base;
  const keys = Object.keys(section.properties).filter((key) => key !== '$schema');
  const inProfile = Object.fromEntries(keys.map((key) => [key, { $ref: `#/properties/${key}` }]));
  const schema = {
    $schema,
    title: 'svc.config.json',
    description: 'Configuration of the svc platform; every key has a default.',
    ...section,
    properties: {
      ...section.properties,
      [PROFILES_KEY]: {
        type: 'object',
        additionalProperties: { type: 'object', properties: inProfile, additionalProperties: false },
      },
    },
  };
  return describeSchema(schema, CONFIG_DESCRIPTIONS);
}

export function defaultConfig(): PlatformConfig {
  return PlatformConfig.parse({});
}

/** Formats a value as JSON in the style of the repository's JSON files. */
export function asJsonFile(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Formats a published JSON Schema. Lines are not indented, which halves the size of the files in the package. */
export function asSchemaFile(schema: unknown): string {
  return asJsonFile(schema).replace(/^ +/gm, '');
}
