import { durationText } from './duration-text.ts';

export { durationText };

const DATE_TIME = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

/** A moment in the local time zone. The title shows it in UTC. */
export function Time({ ms }: { ms: number }) {
  const iso = new Date(ms).toISOString();
  return (
    <time dateTime={iso} title={`${iso.replace('T', ' ').replace('Z', '')} UTC`}>
      {DATE_TIME.format(ms)}
    </time>
  );
}

export function Duration({ ms }: { ms: number | null }) {
  return <>{ms === null ? '–' : durationText(ms)}</>;
}
