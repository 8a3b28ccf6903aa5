import type { ChallengeConfig } from '../../../../../contracts/index.ts';
import { readDotPath } from '../../../../../kit/data/json.ts';
import type { ParsedBody } from './payload.ts';

/**
 * Returns the response to an endpoint verification request, or undefined for any other body. @spec Webhook delivery
 * step 4
 */
export function answerChallenge(
  { bodyPath, value, replyPath }: ChallengeConfig,
  body: ParsedBody,
): { challenge: unknown } | undefined {
  if (readDotPath(body.value, bodyPath) !== value) return undefined;
  const challenge = readDotPath(body.value, replyPath);
  return challenge === undefined ? undefined : { challenge };
}
