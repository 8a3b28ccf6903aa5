import { isRecord } from '../../../../kit/data/is-record.ts';

/** Returns whether a client with this elicitation capability shows forms. An empty capability means forms. */
export function showsForms(elicitation: unknown): boolean {
  return isRecord(elicitation) && (isRecord(elicitation.form) || elicitation.url === undefined);
}
