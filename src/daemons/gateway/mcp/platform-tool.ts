import { z } from 'zod';
import { firstIssue } from '../../../kit/data/first-issue.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { ObjectSchema, PlatformToolOptions, Tool } from './tool.ts';

/** Defines a tool of the platform, whose input is validated with zod. */
export function platformTool<Input extends z.ZodObject>(options: PlatformToolOptions<Input>): Tool {
  const { input, run, readOnly = options.needs === 'viewer', destructive = false, ...rest } = options;
  return {
    hasOutsideData: true,
    ...rest,
    readOnly,
    destructive,
    inputSchema: z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as ObjectSchema,
    run: (given, toolRun) => run(parsed(input, given), toolRun),
  };
}

function parsed<Input extends z.ZodObject>(schema: Input, given: unknown): z.output<Input> {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) => ({
    path: path.map(String).join('.'),
    message,
  }));
  throw new PlatformError('VALIDATION_ERROR', firstIssue(result.error, 'The input'), { details: { issues } });
}
