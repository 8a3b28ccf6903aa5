import { z } from 'zod';
import { ApplicationId, EndpointId, EventTypePattern } from '../../../contracts/index.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';

export const endpointArg = EndpointId.describe('id of the endpoint');
export const applicationFlag = ApplicationId.optional().describe('only this application');

/** Flags of the settings of an endpoint. */
export const settingFlags = {
  type: z
    .array(EventTypePattern)
    .default([])
    .describe('event type, such as order.paid or order.*; repeatable'),
  application: ApplicationId.optional().describe('receives only messages of this application'),
  description: z.string().max(500).optional().describe('text for people'),
  rate: z.coerce
    .number()
    .positive()
    .max(10_000)
    .optional()
    .describe('attempts per second; 0.5 is one in 2 s'),
  ordered: z.boolean().optional().describe('send one message at a time, in order'),
  timeoutMs: z.coerce.number().int().min(1000).max(60_000).optional().describe('time of an attempt'),
  headers: z
    .string()
    .optional()
    .describe('further headers as a JSON object: "@<file>", or "-" for stdin')
    .meta({ placeholder: 'file' }),
};
type SettingFlags = z.output<z.ZodObject<typeof settingFlags>>;

/** Returns the fields of the request body that the flags set. */
export async function settingsOf(
  { type, application, description, rate, ordered, timeoutMs, headers }: SettingFlags,
  cwd: string,
) {
  return {
    ...(type.length > 0 ? { types: type } : {}),
    ...(application === undefined ? {} : { application }),
    ...(description === undefined ? {} : { description }),
    ...(rate === undefined ? {} : { rateLimitPerSecond: rate }),
    ...(ordered === undefined ? {} : { ordered }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(headers === undefined ? {} : { headers: await readHeaders(headers, cwd) }),
  };
}

/** Headers can be credentials, which must not be visible in lists of processes. */
async function readHeaders(given: string, cwd: string): Promise<Record<string, string>> {
  if (given !== '-' && !given.startsWith('@'))
    throw new UsageError('--headers takes "@<file>" or "-", because headers can be secrets.', {
      hint: `echo '{"authorization": "Bearer …"}' | svc endpoints update <id> --headers -`,
    });
  return (await readJson('--headers', given, cwd)) as Record<string, string>;
}
