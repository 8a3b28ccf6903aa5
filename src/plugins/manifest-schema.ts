import { z } from 'zod';
import { describeSchema } from '../contracts/descriptions/describe.ts';
import { MANIFEST_DESCRIPTIONS } from '../contracts/descriptions/manifest.ts';
import { ManifestV3, PluginSchedule, PluginWorkflow } from '../contracts/index.ts';

/**
 * Manifest schema that describes workflows and schedules. `ManifestV3` itself accepts any workflow or schedule, because
 * services validate each of them separately.
 */
const AsWritten = ManifestV3.extend({
  workflows: z.array(PluginWorkflow).default([]),
  schedules: z.array(PluginSchedule).default([]),
});

/** Returns the JSON Schema of `svc.plugin.json`, which editors read from `schemas/plugin.schema.json`. */
export function manifestSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(AsWritten, { io: 'input', unrepresentable: 'any' });
  return {
    $schema,
    title: 'svc.plugin.json',
    description: 'Manifest of a plugin of the svc platform (svc.plugin/3)',
    ...describeSchema(schema, MANIFEST_DESCRIPTIONS),
  };
}
