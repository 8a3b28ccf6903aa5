import { z } from 'zod';

export const MAX_RUN_LABELS = 16;
export const MAX_LABEL_KEY_CHARS = 63;
export const MAX_LABEL_VALUE_CHARS = 128;

const LabelKey = z
  .string()
  .max(MAX_LABEL_KEY_CHARS)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._/-]*$/,
    'a label key must start with a letter or digit and contain only letters, digits and . _ / -',
  );
const LabelValue = z
  .string()
  .min(1)
  .max(MAX_LABEL_VALUE_CHARS)
  .regex(/^\P{C}+$/u, 'a label value must not contain control characters');

/** Labels of a run, such as `{"customer": "acme"}`. Lists of runs can be filtered by them. */
export const RunLabels = z
  .record(LabelKey, LabelValue)
  .refine(
    (labels) => Object.keys(labels).length <= MAX_RUN_LABELS,
    `must not have more than ${MAX_RUN_LABELS} labels`,
  );
export type RunLabels = z.infer<typeof RunLabels>;

/** A label in a query, written `key:value`. The first colon ends the key. */
const LabelFilter = z
  .string()
  .max(MAX_LABEL_KEY_CHARS + 1 + MAX_LABEL_VALUE_CHARS)
  .regex(/^[^:]+:.+$/, 'must be written key:value');

/** Repeatable query parameter. A run matches if it has all given labels. */
export const LabelFilters = z
  .union([z.array(LabelFilter).max(MAX_RUN_LABELS), LabelFilter.transform((label) => [label])])
  .describe('Label as `key:value`; repeat it for runs with several labels');
