import type { WebhookDelivery, WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { durationText } from '../../ui/duration-text.ts';

/** Action that corrects the cause of a problem. Each action has one button or link. */
export type Remedy = 'secret' | 'rotation' | 'resume' | 'enable' | 'replay' | 'logs' | 'plugin' | 'hosts';

export interface Advice {
  text: string;
  remedy?: Remedy;
}

/** State around a delivery that its record does not contain. */
export interface Surroundings {
  isPaused: boolean;
  /** Status of the plugin. Undefined if it is not installed or not known. */
  plugin: 'loaded' | 'broken' | 'disabled' | 'missing' | undefined;
}

/** What to do about each reason of a 401. The record itself explains the reason. */
const AUTHENTICATION: Readonly<Record<string, Advice>> = {
  wrong_secret: {
    text: 'Enter the secret that the sender uses, or create a new one and set it at the sender.',
    remedy: 'secret',
  },
  previous_secret_expired: { text: 'Set the current secret at the sender.', remedy: 'rotation' },
  unprovisioned: { text: 'Create the secret and set it at the sender.', remedy: 'secret' },
  trailing_newline: { text: 'Set the secret again without a line end.', remedy: 'secret' },
  other_encoding: { text: 'Change the encoding at the sender or in the plugin.', remedy: 'plugin' },
  encoding: { text: 'Change the encoding at the sender or in the plugin.', remedy: 'plugin' },
  prefix_missing: { text: 'Change the prefix at the sender or in the plugin.', remedy: 'plugin' },
  reserialised_json: { text: 'Let the sender sign exactly the bytes that it sends.', remedy: 'plugin' },
  body_newline: { text: 'Let the sender sign exactly the bytes that it sends.', remedy: 'plugin' },
  clock_skew: {
    text: 'Correct the clock of the sender or of this machine, then send again.',
    remedy: 'logs',
  },
  header_missing: {
    text: 'Let the sender send the header. See the set-up of the webhook.',
    remedy: 'secret',
  },
  header_repeated: { text: 'Remove the header that a proxy adds.', remedy: 'logs' },
  timestamp_malformed: { text: 'Let the sender sign the time in seconds since 1970.', remedy: 'plugin' },
  validator_refused: { text: 'Read in the log why the validator of the plugin refused.', remedy: 'logs' },
  not_authentic: { text: 'Check the secret at the sender.', remedy: 'secret' },
};

/** What to do about each error code of a delivery that a handler did not end. */
const REFUSED: Readonly<Record<string, Advice>> = {
  NAMESPACE_REQUIRED: { text: 'Create the secret with the namespace in the URL.', remedy: 'secret' },
  PLUGIN_NOT_FOUND: {
    text: 'Install or enable the plugin, then let the sender send again.',
    remedy: 'enable',
  },
  WEBHOOK_NOT_FOUND: {
    text: 'The plugin does not declare this webhook. Compare the URL with it.',
    remedy: 'plugin',
  },
  RATE_LIMIT_EXCEEDED: {
    text: 'Let the sender send again later, or raise rateLimit in the manifest of the plugin.',
    remedy: 'plugin',
  },
  PAYLOAD_TOO_LARGE: { text: 'Raise maxBodyBytes in the manifest of the plugin.', remedy: 'plugin' },
  UNSUPPORTED_MEDIA_TYPE: { text: 'Let the sender send the body uncompressed.', remedy: 'plugin' },
  VALIDATION_ERROR: { text: 'Let the sender send valid JSON in UTF-8.', remedy: 'plugin' },
  UNAUTHORIZED: { text: 'Check the secret at the sender.', remedy: 'secret' },
  HOST_UNAVAILABLE: { text: 'Start the host that runs the plugin, then send again.', remedy: 'hosts' },
  SERVICE_UNAVAILABLE: { text: 'Read in the log which service was away, then send again.', remedy: 'logs' },
  EXECUTION_TIMEOUT: { text: 'The handler took too long. Read its log.', remedy: 'logs' },
};

/** Returns why a delivery is in its state and what to do, in one sentence each. Null if there is nothing to say. */
export function adviceFor(delivery: WebhookDeliveryDetails, around: Surroundings): Advice | null {
  switch (delivery.status) {
    case 'refused':
      return refusal(delivery);
    case 'accepted':
    case 'retrying':
      return pending(delivery, around);
    case 'running':
      return { text: 'The handler runs now, and the sender waits for its answer.', remedy: 'logs' };
    case 'failed':
      return {
        text: 'The handler failed. Read its log, correct the cause, then replay.',
        remedy: 'replay',
      };
    case 'dead':
      return {
        text: `All ${delivery.attempts} attempts failed. Correct the cause, then replay.`,
        remedy: 'replay',
      };
    case 'interrupted':
      return { text: 'The gateway ended while the handler ran. Replay the delivery.', remedy: 'replay' };
    case 'duplicate':
      return {
        text: 'A delivery with the same id was handled within 7 days. To run the handler again, replay that delivery.',
      };
    default:
      return null;
  }
}

function refusal({ reason, explanation, steps }: WebhookDeliveryDetails): Advice {
  if (steps.some(({ step, outcome }) => step === 'dispatch' && outcome === 'paused'))
    return {
      text: 'The webhook was paused. Resume it, then let the sender send again.',
      remedy: 'resume',
    };
  if (explanation) return AUTHENTICATION[explanation.reason] ?? AUTHENTICATION.not_authentic!;
  const [code = ''] = (reason ?? '').split(':');
  return (
    AUTHENTICATION[code] ??
    REFUSED[code] ?? { text: 'Read in the log why it was refused.', remedy: 'logs' as const }
  );
}

function pending(delivery: WebhookDeliveryDetails, { isPaused, plugin }: Surroundings): Advice {
  if (isPaused) return { text: 'It waits because the webhook is paused.', remedy: 'resume' };
  if (plugin === 'disabled') return { text: 'It waits because the plugin is disabled.', remedy: 'enable' };
  if (plugin === 'broken' || plugin === 'missing')
    return { text: 'It waits because the plugin is not loaded.', remedy: 'plugin' };
  if (delivery.steps.some(({ step, outcome }) => step === 'store' && outcome === 'spilled'))
    return {
      text: 'It is on the disk of one machine, and runs when PostgreSQL answers again.',
      remedy: 'logs',
    };
  if (delivery.status === 'retrying')
    return { text: `The last attempt failed. ${nextAttempt(delivery)}`, remedy: 'logs' };
  return {
    text: 'It runs when a process of the plugin is free, the services that it needs answer, and earlier deliveries with the same order key have ended.',
    remedy: 'logs',
  };
}

function nextAttempt({ nextAttemptAt }: WebhookDelivery): string {
  if (nextAttemptAt === null) return 'The next attempt has no time yet.';
  const inMs = nextAttemptAt - Date.now();
  return inMs > 0 ? `The next attempt is in ${durationText(inMs)}.` : 'The next attempt is due.';
}

/** Returns why a delivery of a list is in its state, as a short text. */
export function shortReason(delivery: WebhookDelivery, isPaused: boolean): string {
  const { status, reason, attempts } = delivery;
  const isPending = status === 'accepted' || status === 'retrying';
  if (isPending && isPaused) return 'waits: the webhook is paused';
  if (status === 'retrying') return `${reason ?? 'failed'}. ${nextAttempt(delivery)}`;
  if (status === 'accepted') return 'waits for its first attempt';
  if (status === 'interrupted') return 'the gateway ended while the handler ran';
  if (status === 'duplicate') return 'its id was handled before';
  return reason ?? (attempts > 1 ? `${attempts} attempts` : '');
}
