import type { ComponentChildren } from 'preact';
import { ApiError } from '../api/call.ts';
import { Command } from './command.tsx';

export function Loading({ what }: { what: string }) {
  return (
    <p class="state" role="status">
      Loading {what}…
    </p>
  );
}

/** Shown for a list without items: what would be here, and the command that makes the first one. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return (
    <div class="state empty">
      <p>{children}</p>
      {command && <Command text={command} />}
    </div>
  );
}

/** Shown instead of data that could not be loaded. */
export function Failure({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const isForbidden = error instanceof ApiError && error.status === 403;
  const hint = error instanceof ApiError ? error.details.hint : undefined;
  return (
    <div class="state failure" role="alert">
      <p class="title">{isForbidden ? 'You may not see this.' : 'This could not be loaded.'}</p>
      <p>{error.message}</p>
      {typeof hint === 'string' && <p>{hint}</p>}
      {!isForbidden && onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
