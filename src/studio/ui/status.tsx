/** Kind of a status, which decides its colour and its sign. The sign keeps the kinds apart without colours. */
type Kind = 'good' | 'bad' | 'busy' | 'waiting' | 'idle';

const KINDS: Record<string, Kind> = {
  succeeded: 'good',
  ready: 'good',
  loaded: 'good',
  online: 'good',
  connected: 'good',
  active: 'good',
  resolved: 'good',
  sent: 'good',
  broken: 'bad',
  refused: 'bad',
  failed: 'bad',
  failing: 'bad',
  firing: 'bad',
  expired: 'bad',
  dead: 'bad',
  interrupted: 'bad',
  timed_out: 'bad',
  running: 'busy',
  accepted: 'busy',
  cancelling: 'busy',
  retrying: 'waiting',
  waiting: 'waiting',
  queued: 'waiting',
  paused: 'waiting',
  pending: 'waiting',
};
const SIGNS: Record<Kind, string> = { good: '✓', bad: '✕', busy: '▸', waiting: '◷', idle: '–' };

export function Status({ value }: { value: string }) {
  const kind = KINDS[value] ?? 'idle';
  return (
    <span class={`status ${kind}`}>
      <span aria-hidden="true">{SIGNS[kind]}</span> {value.replace('_', ' ')}
    </span>
  );
}
