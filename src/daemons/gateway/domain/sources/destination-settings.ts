import {
  type DeclaredDestination,
  type DestinationSettings,
  TARGET_KINDS,
  type TargetKind,
  type WebhookRetry,
} from '../../../../contracts/index.ts';
import { minutes, seconds } from '../../../../kit/time/duration.ts';

const NO_SETTINGS = {
  filter: null,
  transform: null,
  retry: null,
  concurrency: null,
  orderBy: null,
  timeoutMs: null,
};
const DEFAULT_CONCURRENCY = 4;
const DEFAULT_TIMEOUT_MS = seconds(30);

/** 8 attempts in about 2.5 hours: after 5 s, 15 s, 45 s, 2 min, 7 min, 20 min and 1 h. */
const FORWARD_RETRY: WebhookRetry = {
  maxAttempts: 8,
  backoff: { initialMs: seconds(5), factor: 3, maxMs: minutes(60) },
};
const PLATFORM_RETRY: WebhookRetry = {
  maxAttempts: 8,
  backoff: { initialMs: seconds(1), factor: 3, maxMs: minutes(10) },
};

/** Default retry policy of each kind. A command is repeated less often, because it may not be safe to repeat. */
const DEFAULT_RETRY: Readonly<Record<TargetKind, WebhookRetry>> = {
  forward: FORWARD_RETRY,
  workflow: PLATFORM_RETRY,
  queue: PLATFORM_RETRY,
  command: { ...PLATFORM_RETRY, maxAttempts: 3 },
};

/** Returns complete settings. Absent settings are null. */
export function settingsOf(given: DeclaredDestination): DestinationSettings {
  return { ...NO_SETTINGS, ...given };
}

export function kindOf(settings: DestinationSettings): TargetKind {
  return TARGET_KINDS.find((kind) => settings[kind] !== undefined)!;
}

/** Returns the settings in effect. */
export function effectiveSettings(settings: DestinationSettings) {
  return {
    retry: settings.retry ?? DEFAULT_RETRY[kindOf(settings)],
    concurrency: settings.concurrency ?? DEFAULT_CONCURRENCY,
    timeoutMs: settings.timeoutMs ?? DEFAULT_TIMEOUT_MS,
  };
}
