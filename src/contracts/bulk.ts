import { z } from 'zod';

/**
 * Fields of a call that acts on many objects. The client repeats the call with `nextCursor`. A repeated call with the
 * same cursor does nothing twice. @spec docs/decisions/0232
 */
export const bulkFields = {
  dryRun: z
    .boolean()
    .default(false)
    .describe('Change nothing: answer what matches, and the cursor that pins it'),
  cursor: z
    .string()
    .max(2048)
    .optional()
    .describe('`nextCursor` of the dry run or of the previous call; later objects are never included'),
};

/** Returns the schema of the objects that match, as found by a dry run. */
export function matching<Item extends z.ZodType>(item: Item) {
  return z
    .object({
      count: z.number().int(),
      isComplete: z.boolean().describe('Whether all were counted. Otherwise there are more'),
      sample: z.array(item),
    })
    .nullable()
    .describe('With `dryRun` only');
}

export const NextBulkCursor = z.string().nullable().describe('Call again with it; null when all are done');
