import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states.tsx';

/** Permissions of a plugin, one per line. */
export function Permissions({ permissions }: { permissions: Record<string, unknown> }) {
  const granted = linesOf(permissions);
  return (
    <Section title="Permissions">
      {granted.length === 0 ? (
        <Empty>It may use nothing outside of its own code.</Empty>
      ) : (
        <ul>
          {granted.map((line) => (
            <li key={line}>
              <code>{line}</code>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** Returns permissions in the notation of plans and manifests, such as `network api.example.com`. */
export function linesOf(permissions: Record<string, unknown>, prefix = ''): string[] {
  return Object.entries(permissions).flatMap(([name, value]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    if (Array.isArray(value)) return value.map((each) => `${path} ${each}`);
    if (typeof value === 'object' && value !== null) return linesOf(value as Record<string, unknown>, path);
    if (value === false || value === undefined || value === null) return [];
    return value === true ? [path] : [`${path} ${String(value)}`];
  });
}
