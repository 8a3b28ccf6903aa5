import { homedir } from 'node:os';
import { expect, test } from 'vitest';
import { userConfigFolder } from '../../src/kit/user-folder.ts';

test('XDG_CONFIG_HOME counts when it names a folder; empty or relative it is unset', () => {
  expect(userConfigFolder({ HOME: '/home/ada', XDG_CONFIG_HOME: '/etc/ada' })).toBe('/etc/ada');
  for (const XDG_CONFIG_HOME of ['', 'config', undefined])
    expect(userConfigFolder({ HOME: '/home/ada', XDG_CONFIG_HOME })).toBe('/home/ada/.config');
  expect(userConfigFolder({ HOME: '' })).toBe(`${homedir()}/.config`);
});
