// Overview or test: what the address says is shown.

function show() {
  const place = read(location.hash);
  document.getElementById("overview").hidden = place !== null;
  document.getElementById("test").hidden = place === null;
}

addEventListener("hashchange", show);
show();
